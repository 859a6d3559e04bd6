"""Nodes of the model world: they fall silent, are given up, come back, or are replaced."""

from dataclasses import replace

from unit.simulation.model_disks import Process
from unit.simulation.model_pods import Pods


class Nodes(Pods):
    """Everything that runs, and the machines that it runs on."""

    def lose_node(self, node: int) -> None:
        """It falls silent: what runs there is unreachable, and may come back."""
        self.away.add(node)
        for process in self._on(node):
            process.is_frozen = True

    def give_up_node(self, node: int, *, evicts: bool) -> None:
        """Kubernetes notices after a minute; after some more its pods are deleted, and remain Terminating."""
        if node not in self.away:
            return
        for name, pod in list(self.pods.items()):
            if pod.node == node:
                self.pods[name] = replace(pod, is_on_lost_node=pod.is_running)
                if evicts:
                    self.delete_pod(name)

    def return_node(self, node: int) -> None:
        """It is back with all that ran there."""
        self.away.discard(node)
        for process in self._on(node):
            process.is_frozen = False
        for name, pod in list(self.pods.items()):
            if pod.node == node:
                self.pods[name] = replace(pod, is_on_lost_node=False)

    def destroy_node(self, node: int) -> None:
        """It never comes back, a new one takes its name; volumes are elsewhere."""
        for name, pod in list(self.pods.items()):
            if pod.node == node:
                self.remove_pod(name)
        for uid, pod in list(self.going.items()):
            if pod.node == node:
                self._end_going(uid)
        self.away.discard(node)

    def _on(self, node: int) -> list[Process]:
        pods = {pod.uid for pod in (*self.pods.values(), *self.going.values()) if pod.node == node}
        return [process for uid, process in self.processes.items() if uid in pods]
