"""The one runner of trainings: settings, the working folder with its checkpoints, the course, the card."""
