"""The credentials of AWS that a pod of the operator mounts, without the SDK's other ways to get some.

Files in the format of `~/.aws` can also name a program to run (`credential_process`), a role to assume or an
endpoint to ask. Whoever may create a backup chooses the Secret with these files, and must not thereby run
programs. So only the keys and the region are read, and given to the SDK as values.
"""

import os
from configparser import ConfigParser, Error
from pathlib import Path

from etcd_operator.pods.contract import AWS_FOLDER_VARIABLE
from etcd_operator.storage.errors import AccessDenied

_KEYS = ("aws_access_key_id", "aws_secret_access_key")
_USED = {*_KEYS, "aws_session_token", "region"}
_SOURCE, _MACHINE = "credential_source", "Ec2InstanceMetadata"
_IGNORED = {"output"}  # `aws configure` writes it; it is about the output of the AWS CLI
_PROFILE = "default"
_ADVICE = f"Use {', '.join(_KEYS)}, and if needed aws_session_token and region."


def session_values() -> dict[str, str]:
    """The arguments of a boto3 session; empty outside of pods, and without a Secret, for the SDK's own chain.

    `credential_source = Ec2InstanceMetadata` requests the identity of the machine; pods otherwise lack it.
    Raises `AccessDenied` for a file that cannot be read, or that relies on what is not used.
    """
    folder = os.environ.get(AWS_FOLDER_VARIABLE, "")
    found = _settings(Path(folder)) if folder else {}
    if found.pop(_SOURCE, "") == _MACHINE:
        os.environ.pop("AWS_EC2_METADATA_DISABLED", None)
    elif found and not all(found.get(key) for key in _KEYS):
        raise AccessDenied(f"The AWS credentials of the Secret have no keys in [{_PROFILE}]. {_ADVICE}")
    return {"region_name" if name == "region" else name: value for name, value in found.items() if value}


def _settings(folder: Path) -> dict[str, str]:
    """Those of both files; the credentials take precedence, as in the SDK."""
    found: dict[str, str] = {}
    for name in ("config", "credentials"):
        found |= _section(folder / name)
    for name in sorted(found.keys() - _USED - {_SOURCE}):
        raise AccessDenied(
            f"The AWS credentials of the Secret have {name}, which is not supported. {_ADVICE}"
        )
    if found.get(_SOURCE, _MACHINE) != _MACHINE:
        raise AccessDenied(
            f"The AWS credentials of the Secret have a {_SOURCE} that is not supported. Only {_MACHINE} is."
        )
    return found


def _section(path: Path) -> dict[str, str]:
    """The default profile of a file; empty if there is no such file."""
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, Error):  # its text would show lines of the file
        raise AccessDenied(
            f"The file {path.name} of the AWS credentials cannot be read. Correct it in the Secret."
        ) from None
    section = parser[_PROFILE] if parser.has_section(_PROFILE) else {}
    return {name: value.strip() for name, value in section.items() if name not in _IGNORED}
