from hypothesis import settings

settings.register_profile("widemargin", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("widemargin")
