//! Attention by online softmax over KV tiles.
