import pytest

pytest.register_assert_rewrite("explorer.page")  # what its assertions say is what the tests say
