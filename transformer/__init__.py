"""A Transformer whose every intermediate tensor can be seen. Knows torch and nothing of any screen."""

from .analysis import head_similarity, row_entropy
from .attention import MultiHeadAttention, attention, attention_scores, attention_weights
from .cache import KVCache
from .checkpoint import Checkpoint, load_checkpoint, load_training, save_checkpoint
from .config import TransformerConfig
from .decode import DecodeStep, greedy_decode
from .masks import causal_mask, padding_mask
from .model import Transformer
from .positional import angular_frequencies, rotate, rotation, sinusoidal_encoding
from .presets import PRESET_NOTES, PRESETS
from .subwords import SubwordTokenizer
from .tasks import (
    TASKS,
    AdditionTask,
    Batch,
    CopyTask,
    DateTask,
    GeneratedTask,
    NumberTask,
    ReversalTask,
    SortTask,
    Task,
    TranslationTask,
)
from .tokenizer import BOS, EOS, PAD, SymbolTokenizer, Tokenizer
from .trace import AttentionRecord, AttentionSite, ResidualSite, Trace
from .train import TrainSettings, TrainState, TrainStep, exact_match, sequence_loss, teacher_forced_loss, train

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "PRESETS",
    "PRESET_NOTES",
    "TASKS",
    "AdditionTask",
    "AttentionRecord",
    "AttentionSite",
    "Batch",
    "Checkpoint",
    "CopyTask",
    "DateTask",
    "DecodeStep",
    "GeneratedTask",
    "KVCache",
    "MultiHeadAttention",
    "NumberTask",
    "ResidualSite",
    "ReversalTask",
    "SortTask",
    "SubwordTokenizer",
    "SymbolTokenizer",
    "Task",
    "Tokenizer",
    "Trace",
    "TrainSettings",
    "TrainState",
    "TrainStep",
    "Transformer",
    "TransformerConfig",
    "TranslationTask",
    "angular_frequencies",
    "attention",
    "attention_scores",
    "attention_weights",
    "causal_mask",
    "exact_match",
    "greedy_decode",
    "head_similarity",
    "load_checkpoint",
    "load_training",
    "padding_mask",
    "rotate",
    "rotation",
    "row_entropy",
    "save_checkpoint",
    "sequence_loss",
    "sinusoidal_encoding",
    "teacher_forced_loss",
    "train",
]
