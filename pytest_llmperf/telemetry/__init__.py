"""What the machine and the engine say about themselves while a run is measured."""
