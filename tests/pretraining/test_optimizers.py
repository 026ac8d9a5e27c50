"""Optimizers and schedules that a config can name."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import Optimizer

from spacy_elmo.pretraining.optimizers import (
    ScheduleMaker,
    configure_constant_v1,
    configure_torch_optimizer_v1,
    configure_warmup_cosine_v1,
    configure_warmup_stable_decay_v1,
)


def make_optimizer(**options: Any) -> Optimizer:
    make = configure_torch_optimizer_v1(**{"name": "SGD", "learn_rate": 0.5, "options": {}, **options})
    return make([nn.Parameter(torch.zeros(2))])


def test_optimizers_are_those_of_torch() -> None:
    optimizer = make_optimizer(name="SGD", learn_rate=0.25, options={"momentum": 0.9})
    assert isinstance(optimizer, torch.optim.SGD)
    assert (optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]) == (0.25, 0.9)
    assert isinstance(make_optimizer(name="Adagrad"), torch.optim.Adagrad)


@pytest.mark.parametrize("name", ["Adamw", "Optimizer", "lr_scheduler", "LBFGS", "SparseAdam", "__name__", ""])
def test_unknown_optimizer(name: str) -> None:
    with pytest.raises(
        ValueError, match=rf"^'{name}' is not a supported optimizer of torch\. Supported are .*Adam, AdamW, .*SGD"
    ) as error:
        make_optimizer(name=name)
    for wrong in ("lr_scheduler", "swap_in", "SparseAdam,", "LBFGS,"):
        assert wrong not in str(error.value).partition("Supported are")[2]


def test_options_that_an_optimizer_does_not_accept() -> None:
    message = r"The optimizer SGD does not accept these options \(\{'betas': \[0\.9\]\}\): .*betas"
    with pytest.raises(ValueError, match=message):
        make_optimizer(options={"betas": [0.9]})
    with pytest.raises(ValueError, match=r"The optimizer SGD does not accept these options .*momentum"):
        make_optimizer(options={"momentum": -1.0})
    with pytest.raises(ValueError, match=r"The optimizer SGD does not accept these options .*lr"):
        make_optimizer(options={"lr": 0.1})


def learn_rates(make: ScheduleMaker, n_steps: int, n: int) -> list[float]:
    """Give the learning rate at each of n steps, for a schedule of n_steps."""
    optimizer = make_optimizer(learn_rate=0.5)
    schedule = make(optimizer, n_steps)
    rates = []
    for _ in range(n):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    return rates


def test_constant_schedule() -> None:
    assert learn_rates(configure_constant_v1(), n_steps=4, n=12) == [0.5] * 12


def test_warmup_and_cosine() -> None:
    rates = learn_rates(configure_warmup_cosine_v1(warmup_steps=3, final_share=0.2), n_steps=43, n=60)
    assert rates[:4] == pytest.approx([0.125, 0.25, 0.375, 0.5])
    # From 0.5 down to a fifth of it, 40 steps later: half and a quarter of the way.
    assert rates[3 + 20] == pytest.approx(0.1 + 0.4 / 2)
    assert rates[3 + 10] == pytest.approx(0.1 + 0.4 * (1 + 0.5**0.5) / 2)
    assert rates[3 + 40 :] == pytest.approx([0.1] * 17)  # and no further, nor up again
    assert rates[3:44] == sorted(rates[3:44], reverse=True)


def test_warmup_a_constant_rate_and_a_decay() -> None:
    make = configure_warmup_stable_decay_v1(warmup_steps=3, decay_fraction=0.25, final_share=0.2)
    rates = learn_rates(make, n_steps=40, n=50)
    assert rates[:4] == pytest.approx([0.125, 0.25, 0.375, 0.5])
    assert rates[3:31] == pytest.approx([0.5] * 28)
    assert rates[35] == pytest.approx(0.1 + 0.4 / 2)
    assert rates[40:] == pytest.approx([0.1] * 10)
    longer = learn_rates(make, n_steps=80, n=60)
    assert longer[:31] == rates[:31]
    assert longer[31:] == pytest.approx([0.5] * 29)


def test_no_decay() -> None:
    make = configure_warmup_stable_decay_v1(warmup_steps=0, decay_fraction=0.0, final_share=0.0)
    assert learn_rates(make, n_steps=5, n=5) == pytest.approx([0.5] * 5)


def test_a_decay_that_leaves_no_steps_for_the_rest() -> None:
    with pytest.raises(ValueError, match=r"decay_fraction must be a number from 0 to 0\.9, got 1\.5"):
        configure_warmup_stable_decay_v1(warmup_steps=1, decay_fraction=1.5, final_share=0.0)


@pytest.mark.parametrize(("n_steps", "n_warmup"), [(1, 0), (9, 0), (10, 1), (39, 3), (1000, 100)])
def test_warmup_is_at_most_a_tenth_of_all_steps(n_steps: int, n_warmup: int) -> None:
    rates = learn_rates(configure_warmup_cosine_v1(warmup_steps=100, final_share=0.0), n_steps, n=n_steps + 1)
    assert rates.index(max(rates)) == n_warmup
    assert max(rates) == pytest.approx(0.5)
    assert rates[-1] == pytest.approx(0, abs=1e-12)
    assert rates[0] == pytest.approx(0.5 / (n_warmup + 1))
