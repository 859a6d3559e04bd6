# ruff: noqa
"""Where each module of the package and each test goes: old path -> new folder, or new path."""

CLUSTER = "etcd_operator/controllers/etcd_cluster"
DECIDE = f"{CLUSTER}/decide"
BACKUP = "etcd_operator/controllers/etcd_backup"
SCHEDULE = "etcd_operator/controllers/etcd_backup_schedule"
RESTORE = "etcd_operator/controllers/etcd_restore"
PEER = "etcd_operator/controllers/etcd_peer"
TOOL = "etcd_operator/controllers/backup_tool"
SHARED = "etcd_operator/controllers/shared"

FOLDERS: dict[str, str] = {
    # new folder: old modules, separated by spaces
    "etcd_operator/api/definitions": (
        "api: adoption_validations backup_descriptions backup_validations cel coreos_backup_validations crd "
        "descriptions limits policies restore_descriptions restore_validations schedule_validations schema "
        "validations version_validations"
    ),
    "etcd_operator/archive": "backup: *",
    "etcd_operator/programs/backup_tool": "backup_tool: *",
    "etcd_operator/programs/survivor_reader": "survivor: *",
    "etcd_operator/etcd": ": pages",
    "etcd_operator/pods": ": http_client http_server pod_client=client pod_contract=contract; core: survivor_report; core/restores: progress_report; "
    "core/backup_tool: report=tool_report",
    "etcd_operator/process": ": health leadership leading=leader_threads process=lifetime signals",
    "etcd_operator": "core: versions",
    "etcd_operator/controllers": "reconcile: build_groups=wiring",
    SHARED: (
        "reconcile: caches expectations failures groups inquiries install jobs objects own_image reporters "
        "storage_class unreadable waits writes"
    ),
    f"{SHARED}/decide": "core: jobs=job_end; core/restores: evictions",
    f"{SHARED}/manifests": "render: command job owner pod storage_class",
    CLUSTER: "reconcile: act cluster=reconciler cluster_parts=parts membership upgrade=upgrade_watch",
    DECIDE: (
        "core: actions backup_health cluster_metrics desired first_start member_names members "
        "membership_actions metrics_pages observation plan polling quorum_events readiness replies starts "
        "state status storage_quantity"
    ),
    f"{DECIDE}/rules": (
        "core/rules: __init__ awaited_entry bootstrap budget claims conflicting_claims crashed data_corrupt guard "
        "learner objects replace resume scale take_over unhealthy"
    ),
    f"{DECIDE}/recovery": (
        "core: absence known_backups recovery_actions recovery_names recovery_texts revision_bump survivor_reader; "
        "core/rules: automatic from_backup given_up in_place last_writes loss manual_recovery no_responders "
        "offline quorum_lost quorum_return recovery_ending recovery_entry recovery_request responders restore "
        "seed seed_job slow_seed stored_backups"
    ),
    f"{DECIDE}/adoption": (
        "core: adoption=external_answers adoption_again=external_again; "
        "core/rules: adopt adopt_again adopt_hold adopt_record adoptable"
    ),
    f"{DECIDE}/upgrade": "core/upgrade: *",
    f"{DECIDE}/kinds": "core/kinds: *",
    f"{CLUSTER}/dialects": "dialects: __init__ base coreos improbable",
    f"{CLUSTER}/manifests": (
        "render: __init__ affinity budget digest ephemeral fetch_backup fetch_step options persistent security seed "
        "seed_job service steps survivor_reader urls"
    ),
    f"{CLUSTER}/members": "reconcile/members: *",
    f"{CLUSTER}/observe": (
        "reconcile: addresses labels nodes observe=observer prober quorum_check readiness replies slots"
    ),
    f"{CLUSTER}/recovery": (
        "reconcile: absences readers readings recovery=acts recovery_proofs=proofs; "
        "reconcile/backup_tool: known_backups=tool_backups; reconcile/restores: stored=stored_backups"
    ),
    PEER: "reconcile/peers: *",
    f"{PEER}/decide": "core/peers: *; dialects: peers=ownership",
    BACKUP: "reconcile/backups: *",
    f"{BACKUP}/decide": "core/backups: *",
    f"{BACKUP}/manifests": "render: backup_job",
    SCHEDULE: "reconcile/backups/schedules: *",
    f"{SCHEDULE}/decide": "core/backups/schedules: *",
    f"{SCHEDULE}/manifests": "render: prune_job scheduled_backup",
    RESTORE: "reconcile/restores: *",
    f"{RESTORE}/decide": "core/restores: *",
    f"{RESTORE}/manifests": "render: restore_job restored",
    TOOL: "reconcile/backup_tool: *",
    f"{TOOL}/decide": "core/backup_tool: *",
    f"{TOOL}/manifests": "render: backup_tool",
}
"""`folder: names; folder: names`: `name=new` renames, `*` is every module that no other line names."""

RENAMED_DOCSTRINGS = {
    "etcd_operator/core/__init__.py": f"{DECIDE}/__init__.py",
    "etcd_operator/reconcile/__init__.py": "etcd_operator/controllers/__init__.py",
}

T = "unit/controllers"
TC = f"{T}/etcd_cluster"
TESTS: dict[str, str] = {
    "unit/archive": "unit/backup: **",
    "unit/programs/backup_tool": "unit/backup_tool: **",
    "unit/programs/survivor_reader": "unit/survivor: **",
    "unit/process": "unit: test_leadership test_leading=test_leader_threads test_process=test_lifetime",
    "unit": "unit/core: test_versions",
    f"{T}/manifests": "unit/render: **",
    f"{TC}/dialects": "unit/dialects: **",
    "unit/simulation": (
        "unit/core: model model_absences model_acts model_backups model_choice model_disks model_etcd model_facts "
        "model_in_place model_judge model_life model_machine model_manual_recovery model_membership model_nodes "
        "model_operator model_pods model_raft model_reading model_recovery model_removal model_restore_operator "
        "model_restores model_sources model_stored model_stored_operator model_stored_truth model_truth "
        "model_truth_claims model_versions test_counterexamples test_counterexamples_restores test_disaster_model "
        "test_membership_model test_model test_recovery_model test_restore_model test_stored_model test_upgrade_model "
        "test_bootstrap_losses"
    ),
    f"{T}/etcd_restore/decide": (
        "unit/core: restore_states test_restore_last_progress test_restore_progress "
        "test_restore_specs test_restore_status test_restores"
    ),
    f"{T}/etcd_backup_schedule/decide": (
        "unit/core: schedules test_prune test_retention test_schedule_clocks test_schedule_health "
        "test_schedule_history test_schedule_metrics test_schedule_results test_schedule_specs "
        "test_schedule_status test_schedule_times test_schedules"
    ),
    f"{T}/etcd_backup/decide": (
        "unit/core: test_backup_specs test_backup_status test_backup_verification "
        "test_backup_verification_reports test_backups"
    ),
    f"{T}/backup_tool/decide": "unit/core: test_backup_health test_backup_tool_plan test_backup_tool_policy",
    f"{T}/etcd_peer/decide": "unit/core: peers test_peers test_peers_kept",
    f"{T}/shared/decide": "unit/core: test_restore_evictions",
    f"{TC}/decide/recovery": (
        "unit/core: automatics manual_recoveries quorum_losses stored test_automatic test_backup_sources "
        "test_closed_service test_given_up test_in_place test_in_place_endings test_in_place_refusals "
        "test_last_writes test_manual_recovery test_manual_recovery_members test_manual_recovery_progress "
        "test_no_responders test_offline test_quorum_lost test_recover_from_stored test_recovery_ending "
        "test_recovery_names test_recovery_progress test_restore_at_creation test_revision_bump"
    ),
    f"{TC}/decide/upgrade": (
        "unit/core: upgrade_states test_upgrade test_upgrade_blocked test_upgrade_late test_upgrade_member "
        "test_upgrade_preflight test_upgrade_skew"
    ),
    f"{TC}/decide/adoption": (
        "unit/core: adoptions test_adopt test_adopt_again test_adopt_begin test_adopt_model "
        "test_adopt_put_back test_adoption"
    ),
    f"{TC}/decide": "unit/core: **",
    "unit/passes": (
        "unit/reconcile: __init__ bench bodies disasters disturbance etcds expected externals harness job_crashes "
        "jobs manual_recoveries mortality network passes=steps pods predecessors probing prune_steps "
        "quorum_losses recoverers restored_clusters restoring schedule_steps tools two_operators unreadable "
        "upgrades verification_steps"
    ),
    f"{T}/etcd_restore": (
        "unit/reconcile: test_restore_crashes test_restore_evictions test_restore_evidence test_restore_metrics "
        "test_restore_progress test_restore_refusals test_restore_sources test_restored_claims test_restores"
    ),
    f"{T}/etcd_backup": (
        "unit/reconcile: test_backup_crashes test_backup_facts test_backup_faults test_backup_jobs "
        "test_backup_two_operators test_backup_verification test_backup_verification_crashes test_backups "
        "test_ended_facts"
    ),
    f"{T}/etcd_backup_schedule": (
        "unit/reconcile: test_backup_health test_prune test_prune_crashes test_prune_failures test_prune_readers "
        "test_schedule_crashes test_schedule_facts test_schedule_holds test_schedule_results test_schedules"
    ),
    f"{T}/backup_tool": (
        "unit/reconcile: test_backup_tool test_backup_tool_crashes test_backup_tool_deletion "
        "test_backup_tool_holds test_backup_tool_lost_lease test_tool_facts"
    ),
    f"{T}/etcd_peer": "unit/reconcile: test_peers test_peer_memory",
    f"{T}/shared": (
        "unit/reconcile: test_backoff test_expectations test_failures test_harness test_inquiries test_install "
        "test_leadership test_objects test_own_image test_rights test_security test_starvation "
        "test_storage_class test_unreadable test_unreadable_clusters test_unreadable_jobs test_waits"
    ),
    f"{TC}/recovery": (
        "unit/reconcile: test_absences test_automatic_loss test_automatic_recovery test_disaster "
        "test_disaster_seeds test_manual_recovery test_manual_recovery_acts test_offline test_offline_acts "
        "test_quorum_lost test_readings test_recover_from_backup test_recovery_acts test_restore_at_creation "
        "test_restore_in_place test_stored_backups"
    ),
    f"{TC}/members": "unit/reconcile: test_cached_members test_claim_facts test_claims test_pod_facts",
    f"{TC}/observe": (
        "unit/reconcile: test_labels test_nodes test_prober test_prober_lanes test_quorum_check test_replies"
    ),
    T: "unit/reconcile: conftest",
    TC: "unit/reconcile: **",
}
"""The same for tests; `**` is everything that is left in the folder, other files included."""

DOCSTRINGS = {
    "etcd_operator/api/definitions": "The CustomResourceDefinitions and admission policies, made from the values of `api`.",
    f"{TOOL}/manifests": "The objects of a backup tool.",
    f"{BACKUP}/manifests": "The Jobs of an EtcdBackup.",
    f"{SCHEDULE}/manifests": "What an EtcdBackupSchedule creates.",
    f"{RESTORE}/manifests": "What an EtcdRestore creates.",
    CLUSTER: "EtcdClusters of both groups: one pass observes, plans, acts, and writes the status.",
    f"{DECIDE}/adoption": "How a running etcd cluster is adopted.",
    f"{DECIDE}/recovery": "How a cluster without a quorum is recovered, and how a backup is restored in place.",
    f"{CLUSTER}/observe": "What is read of a cluster: caches, and the replies of its members.",
    f"{CLUSTER}/recovery": "The shells of recoveries: proofs, acts, and what is remembered between passes.",
    SHARED: "What the controllers of several resources use.",
    f"{SHARED}/decide": "Decisions that several controllers share.",
    f"{SHARED}/manifests": "Parts of manifests that several controllers share.",
    "etcd_operator/pods": "What the operator and the programs in its pods agree on, and how they talk.",
    "etcd_operator/process": "The process of the operator: signals, its end, leadership, health.",
    "etcd_operator/programs": "Programs that run in pods of their own, or beside a member.",
}
"""Of the new packages."""

TEXTS: dict[str, list[tuple[str, str]]] = {
    "e2e/test_rights.py": [
        (
            "uses for sure, and when they are; unit/controllers/shared/test_rights.py uses them.",
            "uses for sure, and when they are used: see\nunit/controllers/shared/test_rights.py.\n",
        )
    ],
    "etcd_operator/api/definitions/limits.py": [
        (
            "Validations, `etcd_operator.versions` and messages share them.",
            "Validations, messages and\n`etcd_operator.versions` share them.\n",
        )
    ],
    "etcd_operator/api/definitions/validations.py": [
        (" (see `definitions.cel`).\n", "\n(see `definitions.cel`).\n"),
        (
            "policy can (`definitions.policies`). Nor can it see the namespace or the status of the cluster:\n#",
            "policy can (`definitions.policies`). Nor can it see the namespace or the status of the\n# cluster:",
        ),
    ],
    f"{DECIDE}/adoption/adopt_record.py": [
        ("unless it is recorded before.\n", "unless it is recorded\nbefore.\n")
    ],
    f"{DECIDE}/recovery/in_place.py": [
        ("the same way: `recovery.manual_recovery`.\n", "the same way:\n`recovery.manual_recovery`.\n")
    ],
    f"{DECIDE}/recovery/quorum_return.py": [
        ("that are silent: `recovery.given_up`.\n", "that are silent:\n`recovery.given_up`.\n")
    ],
    f"{DECIDE}/recovery/recovery_request.py": [
        (
            '"""The recovery of a persistent cluster that a person can request (see `recovery.recovery_names`), and the answer.\n',
            '"""The recovery of a persistent cluster that a person can request, and the answer.\n',
        ),
        (
            "that has more. See `recovery.manual_recovery`.\n",
            "that has more. See\n`recovery.manual_recovery`, and for the names `recovery.recovery_names`.\n",
        ),
        ("after a time (`recovery.automatic`). But\n", "after a time\n(`recovery.automatic`). But "),
    ],
    f"{DECIDE}/rules/resume.py": [
        ("is older (see `adoption.adopt_again`).\n", "is older (`adoption.adopt_again`).\n")
    ],
    f"{CLUSTER}/manifests/options.py": [
        ("that is adopted (see `decide.starts.Joining`).\n", "that is adopted (`starts.Joining`).\n")
    ],
    f"{CLUSTER}/upgrade_watch.py": [
        ("How members are replaced is in `etcd_cluster.members`.", "`etcd_cluster.members` replaces members.")
    ],
    "unit/simulation/model.py": [("(see `controllers.peer`)", "(`etcd_peer`)")],
    "unit/simulation/model_stored_operator.py": [
        (" (`recovery.stored_backups`).", ".\n\nSee `recovery.stored_backups`.\n")
    ],
    "unit/test_explore.py": [('"unit.controllers.etcd_cluster.decide"', '"unit.simulation"')],
    "unit/test_references.py": [
        ("`decide.nowhere`, `decide.plan`", "`core.nowhere`, `decide.plan`"),
    ],
    "unit/controllers/etcd_backup_schedule/decide/test_schedule_times.py": [("parents[2]", "parents[4]")],
    "unit/controllers/conftest.py": [
        (
            "    here, traced = Path(__file__).parent, set()\n    for item in items:\n        if here in item.path.parents:",
            '    pure, traced = {"decide", "dialects", "manifests"}, set()\n    here = Path(__file__).parent\n    for item in items:\n        if here in item.path.parents and not pure.intersection(item.path.parts):',
        )
    ],
    "tox.ini": [("etcd_operator/core/*", "etcd_operator/controllers/*/decide/*")],
}
"""Lines that became too long, and what depends on the depth of a folder: new path -> old text, new text."""
