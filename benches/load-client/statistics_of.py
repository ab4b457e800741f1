"""Means, percentiles and the shape of arrivals, with what a Poisson process of that size shows."""

import functools
import itertools
import random

BIN_S = 0.1
CLOSE_S = 50e-6


def mean(values):
    return sum(values) / len(values) if values else None


def percentile(values, percent):
    """Returns a percentile, interpolated linearly between the closest ranks; None when empty."""
    if not values:
        return None
    ordered = sorted(values)
    rank = percent / 100 * (len(ordered) - 1)
    below = int(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def median(values):
    return percentile(values, 50)


def shape(times_s):
    """Returns the rate and the shape of arrivals, given their times in seconds in order."""
    gaps = [b - a for a, b in itertools.pairwise(times_s)]
    if len(gaps) < 2 or times_s[-1] <= times_s[0]:
        return None
    average = mean(gaps)
    variance = sum((g - average) ** 2 for g in gaps) / (len(gaps) - 1)
    bins = int((times_s[-1] - times_s[0]) / BIN_S)
    counts = [0] * bins
    for t in times_s:
        index = int((t - times_s[0]) / BIN_S)
        if index < bins:
            counts[index] += 1
    dispersion = None
    if bins > 1:
        per_bin = mean(counts)
        spread = sum((c - per_bin) ** 2 for c in counts) / (bins - 1)
        dispersion = spread / per_bin if per_bin else None
    return {
        "rate": 1 / average,
        "gap_cv": variance**0.5 / average,
        "dispersion": dispersion,
        "close_share": sum(g < CLOSE_S for g in gaps) / len(gaps),
    }


@functools.cache
def poisson(requests, rate, draws=300):
    """Returns, per figure of `shape`, the middle 95 % of Poisson processes of that size."""
    source = random.Random(1)
    seen = {}
    for _ in range(draws):
        now, times = 0.0, []
        for _ in range(requests):
            now += source.expovariate(rate)
            times.append(now)
        for key, value in shape(times).items():
            if value is not None:
                seen.setdefault(key, []).append(value)
    return {key: (percentile(v, 2.5), percentile(v, 97.5)) for key, v in seen.items()}
