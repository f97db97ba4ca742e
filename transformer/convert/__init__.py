"""A Marian model in Hugging Face's format becomes a checkpoint of this project: ``python -m transformer.convert``.

The model is the same function. What differs is how it is written down:

ids        Here PAD, BOS and EOS are 0, 1 and 2. Marian has EOS first, PAD last, no BOS, and starts to decode from
           PAD. So id 0 and id 1 both get the row of Marian's PAD (BOS that of decoder_start_token_id, which is PAD's),
           id 2 that of "</s>", id 3 that of "<unk>", and ids from 4 on get the others in Marian's order. The logits
           of 0 and 1 are so low that neither is ever written, as Marian's generation settings forbid PAD.
positions  Marian's sinusoids stand in halves, all sines and then all cosines; here each sine stands beside its
           cosine. Dimensions of the stream have no order of their own, so every matrix that reads or writes the
           stream gets its rows or columns in this project's order; see ``stream_order``.
bias       ``final_logits_bias`` is the bias of the output projection.
"""
