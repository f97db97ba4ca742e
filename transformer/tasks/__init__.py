"""Tasks to learn: where batches come from and what the right answer is."""

from .addition import AdditionTask
from .base import Batch, EnumeratedTask, GeneratedTask, Task
from .dates import DateTask
from .marian import MarianTask
from .numbers import NumberTask
from .symbols import CopyTask, ReversalTask, SortTask, SymbolTask
from .translation import TranslationTask

# Those that can be trained with no data from elsewhere; each can be made without arguments.
TASKS: dict[str, type[GeneratedTask]] = {
    task.name: task for task in (ReversalTask, CopyTask, SortTask, DateTask, NumberTask, AdditionTask)
}

__all__ = [
    "TASKS",
    "AdditionTask",
    "Batch",
    "CopyTask",
    "DateTask",
    "EnumeratedTask",
    "GeneratedTask",
    "MarianTask",
    "NumberTask",
    "ReversalTask",
    "SortTask",
    "SymbolTask",
    "Task",
    "TranslationTask",
]
