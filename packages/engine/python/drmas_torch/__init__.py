"""The worker of drmas's engine on PyTorch: several policies on shared bases, sampled and trained in one process."""
