"""A training step out of `kernels.cc`: the same mathematics as model.Llama.Hidden and cross entropy, fewer passes.

The library is compiled on first use with the system's C++ compiler, for this machine.
"""
import ctypes
import hashlib
import os
import subprocess
import tempfile

import torch
import torch.nn.functional as F
from torch.autograd import Function

import model


def Library():
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernels.cc")
    with open(source, "rb") as f:
        tag = hashlib.sha256(f.read()).hexdigest()[:12]
    path = os.path.join(tempfile.gettempdir(), f"sluice-train-{os.getuid()}-{tag}.so")
    if not os.path.exists(path):
        subprocess.run(["c++", "-std=c++20", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffast-math", "-fopenmp", "-fPIC",
                        "-shared", "-o", path + ".tmp", source, "-lmvec", "-lm"], check=True)
        os.replace(path + ".tmp", path)
    return ctypes.CDLL(path)


LIB = Library()


def Call(name, *args):
    LIB[name](*[ctypes.c_void_p(a.data_ptr()) if isinstance(a, torch.Tensor) else ctypes.c_void_p(None) if a is None
                else ctypes.c_float(a) if isinstance(a, float) else ctypes.c_int64(a) for a in args])


class Embed(Function):
    @staticmethod
    def forward(ctx, weight, ids):
        ctx.save_for_backward(ids)
        ctx.shape = weight.shape
        return weight[ids]

    @staticmethod
    def backward(ctx, dy):
        ids, = ctx.saved_tensors
        dw = torch.zeros(ctx.shape, dtype=torch.float32)
        dw.index_add_(0, ids.reshape(-1), dy.reshape(-1, ctx.shape[1]).float())
        return dw.bfloat16(), None


class AddNorm(Function):
    """(x, a or None, weight) -> (x + a, norm(x + a))."""

    @staticmethod
    def forward(ctx, x, a, weight, eps):
        n, d = x.numel() // x.shape[-1], x.shape[-1]
        total = torch.empty_like(x) if a is not None else x
        y, rstd = torch.empty_like(x), torch.empty(n)
        Call("AddNorm", x, a, weight, total, y, rstd, n, d, eps)
        ctx.save_for_backward(total, weight, rstd)
        ctx.added = a is not None
        return (total if a is not None else x.view_as(x)), y

    @staticmethod
    def backward(ctx, dtotal, dy):
        total, weight, rstd = ctx.saved_tensors
        n, d = rstd.numel(), total.shape[-1]
        dx, dw = torch.empty_like(total), torch.zeros(d)
        Call("AddNormBackward", dtotal.contiguous() if dtotal is not None else None, dy.contiguous(), total, weight, rstd, dx, dw, n, d)
        return dx, dx if ctx.added else None, dw.bfloat16(), None


class SplitRope(Function):
    @staticmethod
    def forward(ctx, qkv, cos, sin, heads, kv, hd):
        b, t, _ = qkv.shape
        q, k, v = (torch.empty(b, h, t, hd, dtype=qkv.dtype) for h in (heads, kv, kv))
        Call("SplitRope", qkv, q, k, v, cos, sin, b, t, heads, kv, hd, 0)
        ctx.save_for_backward(cos, sin)
        ctx.sizes = (b, t, heads, kv, hd)
        return q, k, v

    @staticmethod
    def backward(ctx, dq, dk, dv):
        cos, sin = ctx.saved_tensors
        b, t, heads, kv, hd = ctx.sizes
        dqkv = torch.empty(b, t, (heads + 2 * kv) * hd, dtype=dq.dtype)
        Call("SplitRope", dqkv, dq.contiguous(), dk.contiguous(), dv.contiguous(), cos, sin, b, t, heads, kv, hd, 1)
        return dqkv, None, None, None, None, None


class Attend(Function):
    """q [n, group * t, hd], k, v [n, t, hd] -> [n, group * t, hd], causal."""

    @staticmethod
    def forward(ctx, q, k, v, scale):
        n, t, _ = k.shape
        p = torch.bmm(q, k.transpose(1, 2))
        Call("CausalSoftmax", p, p.numel() // (t * t), t, scale)
        ctx.save_for_backward(q, k, v, p)
        ctx.scale = scale
        return torch.bmm(p, v)

    @staticmethod
    def backward(ctx, do):
        q, k, v, p = ctx.saved_tensors
        t = k.shape[1]
        do = do.contiguous()
        dv = torch.bmm(p.transpose(1, 2), do)
        ds = torch.bmm(do, v.transpose(1, 2))
        Call("CausalSoftmaxBackward", p, ds, ds.numel() // (t * t), t, ctx.scale)
        return torch.bmm(ds, k), torch.bmm(ds.transpose(1, 2), q), dv, None


class SwiGlu(Function):
    @staticmethod
    def forward(ctx, gate_up):
        f = gate_up.shape[-1] // 2
        y = torch.empty(*gate_up.shape[:-1], f, dtype=gate_up.dtype)
        Call("SwiGlu", gate_up, y, y.numel() // f, f)
        ctx.save_for_backward(gate_up)
        return y

    @staticmethod
    def backward(ctx, dy):
        gate_up, = ctx.saved_tensors
        f = dy.shape[-1]
        d = torch.empty_like(gate_up)
        Call("SwiGluBackward", gate_up, dy.contiguous(), d, dy.numel() // f, f)
        return d


class Loss(Function):
    """Weighted mean cross entropy of hidden [n, d] through the output matrix [v, d]."""

    @staticmethod
    def forward(ctx, hidden, weight, target, w):
        logits = F.linear(hidden, weight)
        loss = torch.empty(len(target))
        Call("CrossEntropy", logits, target, (w / w.sum()).contiguous(), loss, *logits.shape)
        ctx.save_for_backward(hidden, weight, logits)
        return loss.sum()

    @staticmethod
    def backward(ctx, g):  # the loss is the root: g is 1
        hidden, weight, dlogits = ctx.saved_tensors
        return dlogits @ weight, dlogits.T @ hidden, None, None


def Hidden(net, ids):
    """As model.Llama.Hidden, for a whole batch without a cache. The model is in bfloat16."""
    c = net.config
    b, t = ids.shape
    cos, sin = (r[:t].contiguous() for r in net.rope)
    x, y = AddNorm.apply(Embed.apply(net.embed, ids), None, net.layers[0].attn_norm, c.norm_eps)
    for i, layer in enumerate(net.layers):
        q, k, v = SplitRope.apply(F.linear(y, torch.cat((layer.q, layer.k, layer.v))), cos, sin, c.n_heads, c.n_kv_heads, c.head_dim)
        o = Attend.apply(q.view(b * c.n_kv_heads, -1, c.head_dim), k.view(b * c.n_kv_heads, t, c.head_dim),
                         v.view(b * c.n_kv_heads, t, c.head_dim), c.head_dim ** -0.5)
        o = o.view(b, c.n_heads, t, c.head_dim).transpose(1, 2).reshape(b, t, -1)
        x, y = AddNorm.apply(x, F.linear(o, layer.o), layer.ffn_norm, c.norm_eps)
        h = SwiGlu.apply(F.linear(y, torch.cat((layer.gate, layer.up))))
        after = net.layers[i + 1].attn_norm if i + 1 < c.n_layers else net.norm
        x, y = AddNorm.apply(x, F.linear(h, layer.down), after, c.norm_eps)
    return y


def Check():
    """The fused step against plain torch in float32: loss and gradients."""
    torch.manual_seed(0)
    config = model.Config(n_layers=2, vocab_size=512)
    net = model.Llama(config).bfloat16()
    plain = model.Llama(config)
    plain.load_state_dict({k: v.float() for k, v in net.state_dict().items()})
    ids, target, w = torch.randint(0, 512, (3, 64)), torch.randint(0, 512, (3 * 64,)), torch.rand(3 * 64)
    loss = Loss.apply(Hidden(net, ids).reshape(-1, config.d_model), net.embed, target, w)
    loss.backward()
    reference = (F.cross_entropy(plain(ids).view(-1, 512), target, reduction="none") * w).sum() / w.sum()
    reference.backward()
    print("loss", loss.item(), reference.item())
    for (name, p), (_, q) in zip(net.named_parameters(), plain.named_parameters()):
        error = ((p.grad.float() - q.grad).norm() / q.grad.norm()).item()
        print(f"{name:24s} {error:.4f}")
        assert error < 0.03, name


if __name__ == "__main__":
    Check()
