"""What Django's own tests are run with: test/suites_django_test.go names the server."""
import os

from farmsql_results import Runner  # noqa: F401, named below


def database(name):
    return {
        "ENGINE": "django.db.backends.mysql", "HOST": os.environ["FARMSQL_HOST"], "PORT": os.environ["FARMSQL_PORT"],
        "USER": "root", "NAME": name, "OPTIONS": {"charset": "utf8mb4"}, "TEST": {"CHARSET": "utf8mb4"},
    }


DATABASES = {"default": database("django"), "other": database("django_other")}
TEST_RUNNER = "farmsql_results.Runner"
SECRET_KEY = "x"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
