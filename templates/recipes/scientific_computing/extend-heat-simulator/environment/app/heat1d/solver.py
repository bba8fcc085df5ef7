"""Time stepping."""

# Beyond this ratio the explicit scheme amplifies the shortest waves.
MAX_RATIO = 0.5


class Unstable(Exception):
    """The time step is too long."""


def ghost(end, edge):
    """Temperature of the cell outside of an end whose last cell has the temperature `edge`."""
    return 2 * end["value"] - edge


def run(case):
    """Yields (step, temperatures) for every step that is to be printed."""
    dx = case["length"] / case["cells"]
    ratio = case["diffusivity"] * case["dt"] / dx**2
    if ratio > MAX_RATIO:
        raise Unstable(f"the step is too long: a dt / dx^2 = {ratio:.3g}, more than {MAX_RATIO}")
    state = [float(value) for value in case["initial"]]
    yield 0, state
    for step in range(1, case["steps"] + 1):
        padded = [ghost(case["left"], state[0]), *state, ghost(case["right"], state[-1])]
        state = [here + ratio * (before - 2 * here + after) for before, here, after in zip(padded, padded[1:], padded[2:])]
        if step % case["every"] == 0:
            yield step, state
