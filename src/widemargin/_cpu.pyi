level: int
