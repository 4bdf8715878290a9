"""Muon for the matrices inside the layers, Adam for the embedding and the norms.

Muon: momentum, then the nearest orthogonal matrix by a quintic Newton-Schulz iteration (Jordan et al., 2024).
"""
import torch


def Orthogonal(g, steps=5):
    """g: [n, rows, cols], rows <= cols."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = (g / (g.norm(dim=(1, 2), keepdim=True) + 1e-7)).bfloat16()
    for _ in range(steps):
        xx = torch.bmm(x, x.transpose(1, 2))
        x = torch.baddbmm(x, torch.baddbmm(xx, xx, xx, beta=b, alpha=c), x, beta=a)  # a x + (b xx + c xx xx) x
    return x.float()


class Optimizer:
    """Master weights in float32, the model's own in bfloat16. Step() takes the model's gradients."""

    def __init__(self, model, matrix_lr=0.02, vector_lr=3e-3, momentum=0.95, betas=(0.9, 0.98), decay=0.02):
        self.matrix_lr, self.vector_lr, self.momentum, self.betas, self.decay = matrix_lr, vector_lr, momentum, betas, decay
        self.named = dict(model.named_parameters())
        self.master = {n: p.detach().float().clone() for n, p in self.named.items()}
        self.first = {n: torch.zeros_like(m) for n, m in self.master.items()}
        self.second = {n: torch.zeros_like(m) for n, m in self.master.items() if not self.IsMatrix(n)}
        self.steps = 0
        groups = {}
        for n, m in self.master.items():
            if self.IsMatrix(n):
                groups.setdefault((min(m.shape), max(m.shape)), []).append(n)
        self.groups = list(groups.values())

    def IsMatrix(self, name):
        return self.master[name].dim() == 2 and "embed" not in name

    @torch.no_grad()
    def Step(self, scale):
        """scale: the schedule's factor of the learning rates."""
        self.steps += 1
        for names in self.groups:
            update = []
            for n in names:
                g = self.named[n].grad.float()
                m = self.first[n].lerp_(g, 1 - self.momentum)
                u = g.lerp(m, self.momentum)
                update.append(u.T if u.shape[0] > u.shape[1] else u)
            for n, u in zip(names, Orthogonal(torch.stack(update))):
                w = self.master[n]
                if w.shape[0] > w.shape[1]:
                    u = u.T
                lr = self.matrix_lr * scale
                w.mul_(1 - lr * self.decay).add_(u, alpha=-lr * max(1, w.shape[0] / w.shape[1]) ** 0.5)
        b1, b2 = self.betas
        for n, v in self.second.items():
            g = self.named[n].grad.float()
            self.first[n].lerp_(g, 1 - b1)
            v.mul_(b2).addcmul_(g, g, value=1 - b2)
            m = self.first[n] / (1 - b1 ** self.steps)
            self.master[n].add_(m / ((v / (1 - b2 ** self.steps)).sqrt() + 1e-8), alpha=-self.vector_lr * scale)
        for n, p in self.named.items():
            p.copy_(self.master[n])
            p.grad = None

    def State(self):
        return {"master": self.master, "first": self.first, "second": self.second, "steps": self.steps}

    @torch.no_grad()
    def Load(self, state):
        for key in ("master", "first", "second"):
            for n, v in state[key].items():
                getattr(self, key)[n].copy_(v)
        self.steps = state["steps"]
        for n, p in self.named.items():
            p.copy_(self.master[n])
