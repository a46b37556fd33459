"""The worker of drmas's engine on PyTorch: several policies on shared bases, sampled and trained in one process.

From the pipe to the kernels:

- `worker`: the process, which takes calls and ticks samplers; `frames` and `messages` are what it reads and writes.
- `engine`: the calls, on models by their numbers; `files` reads the weights of bases.
- `policy`: a micro-batch forward and backward; `tree` finds its shared prompts, `head` gives its log-probs, `trained`
  has weights and optimisers.
- `sampler`: a tick of all requests; `slots` says which of the cache they get, `draws` draws their tokens.
- `decoder`: the forward pass of both; `config` has its shapes, `attention` how rows read earlier rows, `adapters` what
  is added to products.
- `place`: a processor or a card, and a batch as one tensor for it; `graphs` records passes on a card.
"""
