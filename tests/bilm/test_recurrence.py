"""One LSTM layer, forward and backward, against a plain loop that autograd differentiates."""

from typing import Any, NamedTuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from torch import Tensor

from spacy_elmo.bilm.lstm import BiLSTMLayer
from spacy_elmo.bilm.recurrence import Clips, Recurrence

from ..helpers import small_config

WIDTH, CELLS = 3, 5
NAMES = ["x", "hidden", "cell", "weight", "bias", "projection"]

# Sentences at each step, and the rows that are reset at some of them.
SIZES: dict[str, list[int]] = {"even": [3, 3, 3, 3], "ragged": [4, 4, 2, 1, 1], "one step": [2], "one row": [1, 1, 1]}
Starts = dict[int, list[int]]
STARTS: dict[str, Starts] = {
    "none": {},
    "some": {1: [0], 2: [0]},
    "first step": {0: [0], 1: [0]},
    "all rows": {0: [0, 1, 2, 3], 2: [0, 1, 2, 3]},
}
CLIPS: dict[str, Clips] = {
    "both": (0.35, 0.25),
    "only the cells": (0.35, None),
    "only the output": (None, 0.3),  # no float has this value
    "none": (None, None),
}

Outputs = tuple[Tensor, Tensor, Tensor]


class Problem(NamedTuple):
    """What a layer is run on, and how much each of its outputs counts."""

    inputs: dict[str, Tensor]
    clips: Clips
    sizes: list[int]
    keep: list[Tensor | None]
    initial: tuple[Tensor, Tensor] | None
    importance: list[Tensor]


def make_problem(
    clips: Clips = (0.35, 0.25),
    sizes: tuple[int, ...] = (4, 4, 2, 1, 1),
    starts: Starts | None = None,
    *,
    projected: bool = True,
    initial: bool = False,
    seed: int = 0,
    dtype: torch.dtype = torch.float64,
) -> Problem:
    """Make random inputs, all different in both directions."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    cells = CELLS if projected else WIDTH
    n_rows, n_tokens = sizes[0], sum(sizes)
    inputs = {
        "x": random(2, n_tokens, WIDTH),
        "hidden": random(2, n_rows, WIDTH),
        "cell": random(2, n_rows, cells) / 2,
        "weight": random(2, 2 * WIDTH, 4 * cells),
        "bias": random(2, 4 * cells),
    }
    if projected:
        inputs["projection"] = random(2, cells, WIDTH)
    keep: list[Tensor | None] = []
    for step, size in enumerate(sizes):
        rows = [row for row in (starts or {}).get(step, []) if row < size]
        keep_B1 = torch.ones(size, 1, dtype=dtype)
        keep_B1[rows] = 0
        keep.append(keep_B1 if rows else None)
    importance = [random(2, n_tokens, WIDTH), random(2, n_rows, WIDTH), random(2, n_rows, cells)]
    start = (random(2, WIDTH), random(2, cells) / 2) if initial else None
    return Problem(inputs, clips, list(sizes), keep, start, importance)


def run_layer(problem: Problem, inputs: dict[str, Tensor]) -> Outputs:
    arguments = [inputs.get(name) for name in NAMES]
    outputs: Outputs = Recurrence.apply(  # type: ignore[no-untyped-call]
        *arguments, problem.clips, problem.sizes, problem.keep, problem.initial
    )
    return outputs


def run_plainly(problem: Problem, inputs: dict[str, Tensor]) -> Outputs:
    """The same layer, one direction, sentence and step at a time, for autograd."""
    cell_clip, output_clip = problem.clips
    first_token = [sum(problem.sizes[:step]) for step in range(len(problem.sizes))]
    directions = []
    for a in (0, 1):
        x, weight, bias = inputs["x"][a], inputs["weight"][a], inputs["bias"][a]
        n = len(bias) // 4
        tokens: dict[int, Tensor] = {}
        ends = []
        for row in range(len(inputs["hidden"][a])):
            h, c = inputs["hidden"][a, row], inputs["cell"][a, row]
            for step, size in enumerate(problem.sizes):
                if row >= size:
                    break
                keep_B1 = problem.keep[step]
                if keep_B1 is not None and keep_B1[row, 0] == 0:
                    h, c = torch.zeros_like(h), torch.zeros_like(c)
                    if problem.initial is not None:
                        h, c = problem.initial[0][a], problem.initial[1][a]
                token = first_token[step] + row
                gates = torch.cat([x[token], h]) @ weight + bias
                i, j, f, o = gates[:n], gates[n : 2 * n], gates[2 * n : 3 * n], gates[3 * n :]
                c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(j)
                if cell_clip is not None:
                    c = torch.clamp(c, -cell_clip, cell_clip)
                h = torch.sigmoid(o) * torch.tanh(c)
                if "projection" in inputs:
                    h = h @ inputs["projection"][a]
                    if output_clip is not None:
                        h = torch.clamp(h, -output_clip, output_clip)
                tokens[token] = h
            ends.append((h, c))
        y = torch.stack([tokens[token] for token in range(len(tokens))])
        directions.append((y, torch.stack([h for h, _ in ends]), torch.stack([c for _, c in ends])))
    y, hidden, cell = (torch.stack(parts) for parts in zip(*directions, strict=True))
    return y, hidden, cell


def differentiate(
    problem: Problem, run: Any, counted: tuple[int, ...] = (0, 1, 2)
) -> tuple[Outputs, dict[str, Tensor]]:
    """Run a layer, and give its outputs and the gradients of a loss in which some of them count."""
    inputs = {name: tensor.clone().requires_grad_() for name, tensor in problem.inputs.items()}
    outputs = run(problem, inputs)
    loss = sum((outputs[k] * problem.importance[k]).sum() for k in counted)
    gradients = torch.autograd.grad(loss, list(inputs.values()), allow_unused=True)
    return outputs, {
        name: torch.zeros_like(inputs[name]) if gradient is None else gradient
        for name, gradient in zip(inputs, gradients, strict=True)
    }


def assert_same(problem: Problem, counted: tuple[int, ...] = (0, 1, 2)) -> dict[str, Tensor]:
    outputs, gradients = differentiate(problem, run_layer, counted)
    expected_outputs, expected = differentiate(problem, run_plainly, counted)
    for output, values in zip(outputs, expected_outputs, strict=True):
        torch.testing.assert_close(output, values, rtol=1e-10, atol=1e-12)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        assert_allclose(gradient.numpy(), expected[name].numpy(), rtol=1e-9, atol=1e-11, err_msg=name)
    return gradients


# Values and gradients


@pytest.mark.parametrize("projected", [True, False], ids=["projected", "not projected"])
@pytest.mark.parametrize("clips", CLIPS.values(), ids=CLIPS.keys())
@pytest.mark.parametrize("initial", [False, True], ids=["from zeros", "from a state"])
@pytest.mark.parametrize("starts", STARTS.values(), ids=STARTS.keys())
@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
def test_layer_agrees_with_a_plain_loop(
    sizes: list[int], starts: Starts, initial: bool, clips: Clips, projected: bool
) -> None:
    gradients = assert_same(make_problem(clips, tuple(sizes), starts, projected=projected, initial=initial))
    assert all(gradient.abs().max() > 1e-3 for name, gradient in gradients.items() if name not in ("hidden", "cell"))


@pytest.mark.parametrize("counted", [(0,), (1,), (2,), (0, 1), (1, 2)])
def test_gradients_come_in_through_any_of_the_outputs(counted: tuple[int, ...]) -> None:
    gradients = assert_same(make_problem(starts={2: [1]}), counted)
    for name, gradient in gradients.items():
        assert gradient.abs().max() > 1e-3, name


@given(
    lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    starts=st.dictionaries(st.integers(0, 4), st.lists(st.integers(0, 3), max_size=3), max_size=4),
    clips=st.sampled_from(list(CLIPS.values())),
    projected=st.booleans(),
    initial=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_any_layer_agrees_with_a_plain_loop(
    lengths: list[int], starts: Starts, clips: Clips, projected: bool, initial: bool, seed: int
) -> None:
    sizes = tuple(sum(length > step for length in lengths) for step in range(max(lengths)))
    assert_same(make_problem(clips, sizes, starts, projected=projected, initial=initial, seed=seed))


def test_clips_limit_values_and_stop_gradients() -> None:
    # A clip that never bites would prove nothing in the tests above.
    for sizes in SIZES.values():
        problem = make_problem(sizes=tuple(sizes))
        y, _, cell = run_plainly(problem, problem.inputs)
        assert 0.1 < float((y.abs() == 0.25).double().mean()) < 0.9
        assert 0.1 < float((cell.abs() == 0.35).double().mean()) < 0.9
    # Where every output is at its clip, nothing can be learned from it.
    problem = make_problem((None, 1e-9))
    _, gradients = differentiate(problem, run_layer, (0, 1))
    assert all(not gradient.any() for gradient in gradients.values())


def test_only_a_projected_output_is_clipped() -> None:
    problem = make_problem((None, 0.01), projected=False)
    y, _, _ = run_layer(problem, problem.inputs)
    assert y.abs().max() > 0.1


@pytest.mark.parametrize("initial", [False, True], ids=["from zeros", "from a state"])
def test_rows_that_are_reset_do_not_learn_from_before(initial: bool) -> None:
    problem = make_problem((None, None), (2, 2, 2), {2: [0]}, initial=initial)
    problem.importance[0][:, :4] = 0  # only the last step counts
    _, gradients = differentiate(problem, run_layer)
    for name in ("hidden", "cell"):
        assert not gradients[name][:, 0].any()
        assert gradients[name][:, 1].any()
    x_ATBP = gradients["x"].view(2, 3, 2, WIDTH)
    assert not x_ATBP[:, :2, 0].any()
    assert x_ATBP[:, :2, 1].any()
    assert x_ATBP[:, 2, 0].any()


def test_state_of_each_sentence_is_that_of_its_own_last_step() -> None:
    problem = make_problem()
    y, hidden, _ = run_layer(problem, problem.inputs)
    # Sizes 4, 4, 2, 1, 1: the last tokens are those of row 0 at step 4, of row 1 at step 2 and of rows 2 and 3 at step 1.
    torch.testing.assert_close(hidden, y[:, [11, 9, 6, 7]], rtol=0, atol=0)


def test_inputs_stay_as_they_are() -> None:
    problem = make_problem(starts={1: [0]}, initial=True)
    assert problem.initial is not None
    initial = [tensor.clone() for tensor in problem.initial]
    before = {name: tensor.clone() for name, tensor in problem.inputs.items()}
    importance = [tensor.clone() for tensor in problem.importance]
    outputs, _ = differentiate(problem, run_layer)
    for name, tensor in problem.inputs.items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)
    for tensor, values in zip([*problem.importance, *problem.initial], [*importance, *initial], strict=True):
        torch.testing.assert_close(tensor, values, rtol=0, atol=0)
    again, _ = differentiate(problem, run_layer)
    for output, other in zip(outputs, again, strict=True):
        torch.testing.assert_close(output, other, rtol=0, atol=0)


# bfloat16


@pytest.mark.parametrize("projected", [True, False], ids=["projected", "not projected"])
def test_bfloat16_is_close_to_float32(projected: bool) -> None:
    problem = make_problem((3.0, 3.0), starts={1: [1]}, projected=projected, initial=True, dtype=torch.float32)
    expected_outputs, expected = differentiate(problem, run_layer)
    with torch.autocast("cpu", torch.bfloat16):
        outputs, gradients = differentiate(problem, run_layer)
    assert not torch.equal(outputs[0], expected_outputs[0])  # it was on
    for output, values in zip(outputs, expected_outputs, strict=True):
        assert output.dtype == torch.float32
        torch.testing.assert_close(output, values, rtol=0.05, atol=0.05)
    for name, gradient in gradients.items():
        assert gradient.dtype == torch.float32
        error = (gradient - expected[name]).norm() / expected[name].norm()
        assert error < 0.05, name


@pytest.mark.parametrize("clip", [0.25, 0.3, 0.35, 0.7])
def test_bfloat16_stops_gradients_at_clips_that_it_cannot_express(clip: float) -> None:
    # Weights so large that every output is far outside of its bounds, and at the clip in either precision.
    problem = make_problem((None, clip), projected=True, dtype=torch.float32)
    problem.inputs["bias"][:, 3 * CELLS :] = 9.0
    problem.inputs["projection"][:] = 100.0
    with torch.autocast("cpu", torch.bfloat16):
        outputs, gradients = differentiate(problem, run_layer, (0, 1))
    torch.testing.assert_close(outputs[0].abs(), torch.full_like(outputs[0], clip), rtol=0.01, atol=0)
    for name, gradient in gradients.items():
        assert not gradient.any(), name


# The layer, with and without gradients


def test_layer_opens_the_forget_gate_by_one() -> None:
    layer = BiLSTMLayer(small_config(cells=6, cell_clip=None)).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
    zeros, ones = torch.zeros(2, 1, 6, dtype=torch.float64), torch.ones(2, 1, 6, dtype=torch.float64)
    expected = torch.sigmoid(torch.tensor(1.0, dtype=torch.float64)).expand(2, 1, 6)
    for learns in (True, False):
        with torch.set_grad_enabled(learns):
            y, _, cell = layer(zeros, [1], zeros, ones)
        torch.testing.assert_close(cell.detach(), expected)
        torch.testing.assert_close(y.detach(), torch.tanh(expected) / 2)
