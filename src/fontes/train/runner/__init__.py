"""Runner of trainings: settings, the working folder with checkpoints, the training loop, the model card."""
