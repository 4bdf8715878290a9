"""The llama architecture, small: RMSNorm, rotary positions, grouped attention, SwiGLU, tied embeddings.

Rotary pairs are interleaved (2i, 2i+1), which is how GGUF files of this architecture hold Q and K; the Hugging Face
exporter permutes them. `fused.py` is the quick form of the same step for training.
"""
from dataclasses import asdict, dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab_size: int = 4096
    d_model: int = 256
    n_layers: int = 6
    n_heads: int = 8
    n_kv_heads: int = 4
    head_dim: int = 32
    d_ff: int = 768
    context_length: int = 1024
    rope_base: float = 10000.0
    norm_eps: float = 1e-5

    def AsDict(self):
        return asdict(self)


def RopeTable(config, length):
    """cos, sin: [length, head_dim / 2], float32."""
    inverse = config.rope_base ** (-torch.arange(0, config.head_dim, 2, dtype=torch.float64) / config.head_dim)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * inverse[None, :]
    return angle.cos().float(), angle.sin().float()


def Norm(x, weight, eps):
    f = x.float()
    return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + eps)).to(weight.dtype) * weight


def Rope(x, cos, sin):
    """x: [batch, time, heads, head_dim]."""
    a, b = x[..., 0::2].float(), x[..., 1::2].float()
    c, s = cos[None, :x.shape[1], None], sin[None, :x.shape[1], None]
    return torch.stack((a * c - b * s, a * s + b * c), -1).flatten(-2).to(x.dtype)


def SwiGlu(gate_up):
    gate, up = gate_up.chunk(2, -1)
    return F.silu(gate) * up


def CausalSoftmax(scores, scale):
    """scores: [batch * heads, new, all]; the last of the new positions sees everything."""
    new, every = scores.shape[-2:]
    mask = torch.ones(new, every, dtype=torch.bool).triu(1 + every - new)
    return (scores.float() * scale).masked_fill(mask, float("-inf")).softmax(-1).to(scores.dtype)


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.attn_norm = nn.Parameter(torch.ones(c.d_model))
        self.q = nn.Parameter(torch.empty(c.n_heads * c.head_dim, c.d_model))
        self.k = nn.Parameter(torch.empty(c.n_kv_heads * c.head_dim, c.d_model))
        self.v = nn.Parameter(torch.empty(c.n_kv_heads * c.head_dim, c.d_model))
        self.o = nn.Parameter(torch.empty(c.d_model, c.n_heads * c.head_dim))
        self.ffn_norm = nn.Parameter(torch.ones(c.d_model))
        self.gate = nn.Parameter(torch.empty(c.d_ff, c.d_model))
        self.up = nn.Parameter(torch.empty(c.d_ff, c.d_model))
        self.down = nn.Parameter(torch.empty(c.d_model, c.d_ff))


class Llama(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Parameter(torch.empty(config.vocab_size, config.d_model))
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.n_layers))
        self.norm = nn.Parameter(torch.ones(config.d_model))
        self.rope = RopeTable(config, config.context_length)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02 if name == "embed" else p.shape[1] ** -0.5)
                if name.endswith((".o", ".down")):
                    p.data *= (2 * config.n_layers) ** -0.5

    def Attention(self, layer, x, cos, sin, cache=None):
        """x: [batch, time, d_model]. cache: a dict that keeps the K and V of what went before."""
        c = self.config
        b, t, _ = x.shape
        q = Rope(F.linear(x, layer.q).view(b, t, c.n_heads, c.head_dim), cos, sin).transpose(1, 2)
        k = Rope(F.linear(x, layer.k).view(b, t, c.n_kv_heads, c.head_dim), cos, sin).transpose(1, 2)
        v = F.linear(x, layer.v).view(b, t, c.n_kv_heads, c.head_dim).transpose(1, 2)
        if cache is not None:
            if "k" in cache:
                k, v = torch.cat((cache["k"], k), 2), torch.cat((cache["v"], v), 2)
            cache["k"], cache["v"] = k, v
        group = c.n_heads // c.n_kv_heads
        # The query heads of a group are laid along the time axis: K and V are not copied.
        q = q.reshape(b * c.n_kv_heads, group * t, c.head_dim)
        k, v = (z.reshape(b * c.n_kv_heads, -1, c.head_dim) for z in (k, v))
        scores = torch.bmm(q, k.transpose(1, 2)).view(b * c.n_heads, t, -1)
        p = CausalSoftmax(scores, c.head_dim ** -0.5)
        o = torch.bmm(p.view(b * c.n_kv_heads, group * t, -1), v)
        o = o.view(b, c.n_heads, t, c.head_dim).transpose(1, 2).reshape(b, t, -1)
        return F.linear(o, layer.o)

    def Hidden(self, ids, caches=None, start=0):
        """ids: [batch, time] -> the normalised hidden states, [batch, time, d_model]."""
        c = self.config
        cos, sin = (r[start:start + ids.shape[1]] for r in self.rope)
        x = F.embedding(ids, self.embed)
        for i, layer in enumerate(self.layers):
            x = x + self.Attention(layer, Norm(x, layer.attn_norm, c.norm_eps), cos, sin, caches[i] if caches is not None else None)
            h = F.linear(Norm(x, layer.ffn_norm, c.norm_eps), torch.cat((layer.gate, layer.up)))
            x = x + F.linear(SwiGlu(h), layer.down)
        return Norm(x, self.norm, c.norm_eps)

    def Logits(self, hidden):
        return F.linear(hidden, self.embed)

    def forward(self, ids):
        return self.Logits(self.Hidden(ids))
