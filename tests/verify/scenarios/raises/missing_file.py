"""Data that is not there."""

import torch

torch.load("data/train.pt")
