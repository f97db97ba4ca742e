"""A Transformer whose every intermediate tensor can be seen. Knows torch and nothing of any screen."""

from .analysis import answer_share, head_similarity, join_pieces, row_entropy, with_means
from .attention import MultiHeadAttention, attention, attention_scores, attention_weights
from .cache import KVCache
from .checkpoint import Checkpoint, load_checkpoint, load_training, save_checkpoint
from .config import TransformerConfig
from .decode import DecodeStep, greedy_decode
from .empty_rows import MASKED_SOFTMAXES, weights_and_gradients
from .expected import expected_entropy, expected_largest, expected_slope, expected_trace, median_slope
from .leak import leak
from .masks import causal_mask, padding_mask
from .merging import MergeStep, merge_steps
from .model import Transformer
from .order import (
    added_scores,
    diagonals,
    embedding_rms,
    expected_token_rms,
    float32_encoding,
    nearest_positions,
    permuted_outputs,
    rotary_scores,
    without_positions,
)
from .pieces import PieceTokenizer
from .positional import angular_frequencies, rotate, rotation, rotation_blocks, sinusoidal_encoding, wavelengths
from .presets import PRESET_NOTES, PRESETS
from .saturation import head_saturation, jacobian_trace, sigmoid_slope, softmax_jacobian, typical_gap
from .subwords import SubwordTokenizer
from .tasks import (
    TASKS,
    AdditionTask,
    Batch,
    CopyTask,
    DateTask,
    GeneratedTask,
    MarianTask,
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
    "MASKED_SOFTMAXES",
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
    "MarianTask",
    "MergeStep",
    "MultiHeadAttention",
    "NumberTask",
    "PieceTokenizer",
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
    "added_scores",
    "angular_frequencies",
    "answer_share",
    "attention",
    "attention_scores",
    "attention_weights",
    "causal_mask",
    "diagonals",
    "embedding_rms",
    "exact_match",
    "expected_entropy",
    "expected_largest",
    "expected_slope",
    "expected_token_rms",
    "expected_trace",
    "float32_encoding",
    "greedy_decode",
    "head_saturation",
    "head_similarity",
    "jacobian_trace",
    "join_pieces",
    "leak",
    "load_checkpoint",
    "load_training",
    "median_slope",
    "merge_steps",
    "nearest_positions",
    "padding_mask",
    "permuted_outputs",
    "rotary_scores",
    "rotate",
    "rotation",
    "rotation_blocks",
    "row_entropy",
    "save_checkpoint",
    "sequence_loss",
    "sigmoid_slope",
    "sinusoidal_encoding",
    "softmax_jacobian",
    "teacher_forced_loss",
    "train",
    "typical_gap",
    "wavelengths",
    "weights_and_gradients",
    "with_means",
    "without_positions",
]
