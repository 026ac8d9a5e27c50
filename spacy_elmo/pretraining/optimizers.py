"""What a config can name to change the weights by: any of torch's optimizers, under a schedule."""

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
    """Try what a config names, so that a mistake is found out before anything is done.

    make_optimizer, make_schedule (Callable): What will make the optimizer and the schedule.
    """
    from torch import zeros
    from torch.nn import Parameter
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

    optimizer = _try("optimizer", Optimizer, make_optimizer, [Parameter(zeros(2, 2))])
    _try("schedule", LRScheduler, make_schedule, optimizer, 10)


def _try(name: str, expected: type[Any], make: Callable[..., Any], *arguments: Any) -> Any:
    problem = "it makes something else"
    try:
        if isinstance(made := make(*arguments), expected):
            return made
    except TypeError as error:
        problem = str(error)
    raise ValueError(
        f"[bilm_training.{name}] names something that makes no {name} of torch: {problem}. Those of spaCy and Thinc, such as Adam.v1, "
        f"train other models; configs/pretrain.cfg has one that fits."
    )


@registry.optimizers("spacy_elmo.TorchOptimizer.v1")
def configure_torch_optimizer_v1(*, name: str, learn_rate: float, options: dict[str, Any]) -> OptimizerMaker:
    """Take an optimizer from torch.optim.

    name (str): Its class: "AdamW", "Adagrad", "SGD" and so on.
    learn_rate (float): The learning rate that the schedule starts from.
    options (dict): Its other arguments.
    RETURNS (Callable): Makes the optimizer of parameters.
    """

    def make(parameters: Iterable["Parameter"]) -> "Optimizer":
        from torch import optim

        # LBFGS wants to compute the loss several times per step, SparseAdam has no use for dense gradients.
        found = {
            name: getattr(optim, name) for name in optim.__all__ if name not in ("LBFGS", "Optimizer", "SparseAdam")
        }
        known = sorted(
            name for name, cls in found.items() if isinstance(cls, type) and issubclass(cls, optim.Optimizer)
        )
        if name not in known:
            raise ValueError(f"There is no optimizer {name!r} of torch that serves here. There are {', '.join(known)}.")
        try:
            optimizer: Optimizer = found[name](parameters, lr=learn_rate, **options)
        except (TypeError, ValueError) as error:
            raise ValueError(f"The optimizer {name} does not take these options ({options}): {error}") from None
        return optimizer

    return make


@registry.schedules("spacy_elmo.WarmupCosine.v1")
def configure_warmup_cosine_v1(*, warmup_steps: int, final_share: float) -> ScheduleMaker:
    """Raise the learning rate in a line, then lower it along half a cosine until the last step.

    warmup_steps (int): How many steps it rises for; at most a tenth of all.
    final_share (float): What is left of the learning rate at the end.
    RETURNS (Callable): Makes the schedule of an optimizer, for a number of steps.
    """

    def make(optimizer: "Optimizer", n_steps: int) -> "LRScheduler":
        from torch.optim.lr_scheduler import LambdaLR

        n_warmup = min(warmup_steps, n_steps // 10)

        def share(step: int) -> float:
            if step < n_warmup:
                return (step + 1) / (n_warmup + 1)
            progress = (step - n_warmup) / max(1, n_steps - n_warmup)
            return final_share + (1 - final_share) * (1 + math.cos(math.pi * min(progress, 1.0))) / 2

        return LambdaLR(optimizer, share)

    return make


@registry.schedules("spacy_elmo.Constant.v1")
def configure_constant_v1() -> ScheduleMaker:
    """RETURNS (Callable): Makes a schedule that leaves the learning rate as it is."""

    def make(optimizer: "Optimizer", n_steps: int) -> "LRScheduler":
        from torch.optim.lr_scheduler import ConstantLR

        return ConstantLR(optimizer, factor=1.0)

    return make
