"""Optimizers and learning rate schedules that a config can name."""

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from spacy.util import registry

if TYPE_CHECKING:
    from torch.nn import Parameter
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

OptimizerMaker = Callable[[Iterable["Parameter"]], "Optimizer"]
ScheduleMaker = Callable[["Optimizer", int], "LRScheduler"]


def check_makers(make_optimizer: OptimizerMaker, make_schedule: ScheduleMaker) -> None:
    """Try the optimizer and the schedule of a config, so that mistakes are found before anything else is done.

    make_optimizer, make_schedule (Callable): They make the optimizer and the schedule.
    """
    from torch import zeros
    from torch.nn import Parameter
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

    optimizer = _try_maker("optimizer", Optimizer, make_optimizer, [Parameter(zeros(2, 2))])
    _try_maker("schedule", LRScheduler, make_schedule, optimizer, 10)


def _try_maker(name: str, expected: type[Any], make: Callable[..., Any], *arguments: Any) -> Any:
    problem = "it returns something else"
    try:
        if isinstance(made := make(*arguments), expected):
            return made
    except TypeError as error:
        problem = str(error)
    raise ValueError(
        f"[bilm_training.{name}] does not return a torch {name}: {problem}. Those of spaCy and Thinc, such as Adam.v1, cannot "
        f"be used here; configs/pretrain.cfg has one that can."
    )


@registry.optimizers("spacy_elmo.TorchOptimizer.v1")
def configure_torch_optimizer_v1(*, name: str, learn_rate: float, options: dict[str, Any]) -> OptimizerMaker:
    """Configure an optimizer of torch.optim.

    name (str): Its class: "AdamW", "Adagrad", "SGD" and so on.
    learn_rate (float): The learning rate, which the schedule scales.
    options (dict): Its other arguments.
    RETURNS (Callable): Makes the optimizer for parameters.
    """

    def make(parameters: Iterable["Parameter"]) -> "Optimizer":
        from torch import optim

        # LBFGS computes the loss several times per step, SparseAdam needs sparse gradients.
        found = {
            name: getattr(optim, name) for name in optim.__all__ if name not in ("LBFGS", "Optimizer", "SparseAdam")
        }
        known = sorted(
            name for name, cls in found.items() if isinstance(cls, type) and issubclass(cls, optim.Optimizer)
        )
        if name not in known:
            raise ValueError(f"{name!r} is not a supported optimizer of torch. Supported are {', '.join(known)}.")
        try:
            optimizer: Optimizer = found[name](parameters, lr=learn_rate, **options)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The optimizer {name} does not accept these options ({options}): {error}") from None
        return optimizer

    return make


@registry.schedules("spacy_elmo.WarmupCosine.v1")
def configure_warmup_cosine_v1(*, warmup_steps: int, final_share: float) -> ScheduleMaker:
    """Configure a linear warmup of the learning rate, followed by half a cosine down to the last step.

    warmup_steps (int): Steps of the warmup; at most a tenth of all.
    final_share (float): The fraction of the learning rate that is left at the end.
    RETURNS (Callable): Makes the schedule of an optimizer, for a number of steps.
    """

    def make(optimizer: "Optimizer", n_steps: int) -> "LRScheduler":
        from torch.optim.lr_scheduler import LambdaLR

        n_warmup = min(warmup_steps, n_steps // 10)

        def factor(step: int) -> float:
            if step < n_warmup:
                return (step + 1) / (n_warmup + 1)
            progress = (step - n_warmup) / max(1, n_steps - n_warmup)
            return final_share + (1 - final_share) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2

        return LambdaLR(optimizer, factor)

    return make


@registry.schedules("spacy_elmo.WarmupStableDecay.v1")
def configure_warmup_stable_decay_v1(*, warmup_steps: int, decay_fraction: float, final_share: float) -> ScheduleMaker:
    """Configure a linear warmup of the learning rate, a constant rate, and a linear decay down to the last step. The rate
    before the decay does not depend on the number of steps, so a run can be made longer before its decay at no loss.

    warmup_steps (int): Steps of the warmup; at most a tenth of all.
    decay_fraction (float): The fraction of the steps in which the rate decays.
    final_share (float): The fraction of the learning rate that is left at the end.
    RETURNS (Callable): Makes the schedule of an optimizer, for a number of steps.
    """
    if not 0 <= decay_fraction <= 0.9:
        raise ValueError(f"decay_fraction must be a number from 0 to 0.9, got {decay_fraction!r}.")

    def make(optimizer: "Optimizer", n_steps: int) -> "LRScheduler":
        from torch.optim.lr_scheduler import LambdaLR

        n_warmup = min(warmup_steps, n_steps // 10)
        n_decay = max(1, round(decay_fraction * n_steps))

        def factor(step: int) -> float:
            if step < n_warmup:
                return (step + 1) / (n_warmup + 1)
            left = min(1.0, max(0.0, (n_steps - step) / n_decay))
            return final_share + (1 - final_share) * left

        return LambdaLR(optimizer, factor)

    return make


@registry.schedules("spacy_elmo.Constant.v1")
def configure_constant_v1() -> ScheduleMaker:
    """RETURNS (Callable): Makes a schedule with a constant learning rate."""

    def make(optimizer: "Optimizer", n_steps: int) -> "LRScheduler":
        from torch.optim.lr_scheduler import ConstantLR

        return ConstantLR(optimizer, factor=1.0)

    return make
