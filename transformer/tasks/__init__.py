"""Tasks to learn: where batches come from and what the right answer is."""

from .addition import AdditionTask
from .base import Batch, EnumeratedTask, Task
from .dates import DateTask
from .numbers import NumberTask
from .symbols import CopyTask, ReversalTask, SortTask, SymbolTask

TASKS: dict[str, type[Task]] = {
    task.name: task for task in (ReversalTask, CopyTask, SortTask, DateTask, NumberTask, AdditionTask)
}

__all__ = [
    "TASKS",
    "AdditionTask",
    "Batch",
    "CopyTask",
    "DateTask",
    "EnumeratedTask",
    "NumberTask",
    "ReversalTask",
    "SortTask",
    "SymbolTask",
    "Task",
]
