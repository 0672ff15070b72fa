"""Files on their way through a Ray cluster: from an actor on the driver's machine to workers."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

from tunesmith.engines.delivery import Described, Files, Own, describe, receive
from tunesmith.errors import InputError


def sent(ray: Any, share: Any) -> tuple[bytes, bool]:
    """Return a packed share with its files described, and whether there are any."""
    stream, files = io.BytesIO(), []

    class Sender(ray.cloudpickle.Pickler):  # type: ignore[misc]
        def persistent_id(self, value: object) -> list[Described] | None:
            if not isinstance(value, Files):
                return None
            files.append(value)
            return describe(value)

    Sender(stream).dump(share)
    return stream.getvalue(), bool(files)


def received(ray: Any, share: bytes, actor: Any, timeout: float) -> Any:
    """Return a share that was sent; without an actor, its files must be here."""
    return receive(share, None if actor is None else _Fetching(ray, actor, timeout))


def shelf(ray: Any) -> Any:
    """Start an actor on this machine that reads files for others; it starts again if it is lost."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    how = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": -1}
    return ray.remote(Own).options(scheduling_strategy=here, **how).remote()


class _Fetching:
    """The files of the driver's machine."""

    def __init__(self, ray: Any, actor: Any, timeout: float) -> None:
        self._ray, self._actor, self._timeout = ray, actor, timeout

    def digests(self, paths: Sequence[str]) -> list[str]:
        found: list[str] = self._get(self._actor.digests.remote(paths))
        return found

    def pieces(self, path: str) -> Iterator[bytes]:
        # One piece is on its way while the one before is written.
        start, coming = 0, self._actor.piece.remote(path, 0)
        while piece := self._get(coming):
            start += len(piece)
            coming = self._actor.piece.remote(path, start)
            yield piece

    def _get(self, ref: Any) -> Any:
        """Return an answer; raise what the reading of a file raised, without a trace of Ray."""
        ray = self._ray
        try:
            return ray.get(ref, timeout=self._timeout)
        except ray.exceptions.RayTaskError as error:
            raise error.cause from None
        except ray.exceptions.RayError as error:
            raise InputError(
                f"a model's files do not come from the driver's machine: {type(error).__name__}",
                remedy="put them under the same path on all nodes",
            ) from None
