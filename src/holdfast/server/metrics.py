"""Counts and durations of a server, in the text that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

# From a look-up to long work, in seconds.
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 60.0)


class Metrics:
    """What has been answered since the start; names of routes only, nothing of what was asked."""

    def __init__(self) -> None:
        self._answered: Counter[tuple[str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._answered[route, status] += 1
        self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))[bisect_left(BOUNDS, seconds)] += 1
        self._seconds[route] += seconds  # type: ignore[assignment]  # a counter of seconds

    def histograms(self) -> dict[str, tuple[int, ...]]:
        """Return, for each route, how many answers took up to each of `BOUNDS` seconds, and how many longer."""
        return {route: tuple(buckets) for route, buckets in sorted(self._buckets.items())}

    def write(self, gauges: dict[str, float]) -> str:
        """Return everything, with values of the moment."""
        lines = ["# TYPE holdfast_requests_total counter"]
        lines += [
            f'holdfast_requests_total{{route="{route}",status="{status}"}} {number}'
            for (route, status), number in sorted(self._answered.items())
        ]
        lines.append("# TYPE holdfast_request_seconds histogram")
        for route, buckets in sorted(self._buckets.items()):
            below = 0
            for bound, number in zip((*BOUNDS, "+Inf"), buckets, strict=True):
                below += number
                lines.append(f'holdfast_request_seconds_bucket{{route="{route}",le="{bound}"}} {below}')
            lines.append(f'holdfast_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'holdfast_request_seconds_count{{route="{route}"}} {below}')
        for name, value in gauges.items():
            lines += [f"# TYPE holdfast_{name} gauge", f"holdfast_{name} {value:g}"]
        return "\n".join(lines) + "\n"
