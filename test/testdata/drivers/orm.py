"""Django's ORM, over mysqlclient: migrations, transactions, rollback, savepoints, errors.

usage: orm.py HOST PORT DATABASE
"""
import datetime
import decimal
import sys

import django
from django.conf import settings

host, port, database = sys.argv[1:]
settings.configure(
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions"],
    DATABASES={"default": {"ENGINE": "django.db.backends.mysql", "HOST": host, "PORT": port, "USER": "root", "NAME": database,
                          "OPTIONS": {"charset": "utf8mb4"}}},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=False, SECRET_KEY="x")
django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402
from django.contrib.sessions.models import Session  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, transaction  # noqa: E402
from django.db.models import Count, F, Q  # noqa: E402


def check(what, got, want):
    if got != want:
        raise SystemExit("%s: %r, want %r" % (what, got, want))


call_command("migrate", verbosity=0)
call_command("migrate", verbosity=0)  # nothing is left to do
try:
    with transaction.atomic():
        User.objects.create_user("ann", "ann@example.com", "secret")
        raise KeyError
except KeyError:
    pass
check("rolled back", User.objects.count(), 0)
with transaction.atomic():
    ann = User.objects.create_user("ann", "ann@example.com", "secret", first_name="\u00c4nn \U0001f600")
    try:
        with transaction.atomic():  # a savepoint
            User.objects.create_user("bob")
            User.objects.create_user("ann")
    except IntegrityError as e:
        check("error", e.args[0], 1062)
check("the outer transaction stays", list(User.objects.values_list("username", flat=True)), ["ann"])
group = Group.objects.create(name="writers")
ann.groups.add(group)
User.objects.bulk_create([User(username="u%d" % k, is_active=k % 2 == 0) for k in range(50)])
check("filtered", User.objects.filter(Q(username__startswith="u1") & ~Q(is_active=True)).count(), 6)
check("updated", User.objects.filter(username__in=["u1", "u3"]).update(is_staff=True, last_name=F("username")), 2)
check("counted", list(Group.objects.annotate(n=Count("user")).values_list("name", "n")), [("writers", 1)])
check("ordered", list(User.objects.order_by("-username")[:2].values_list("username", flat=True)), ["u9", "u8"])
with transaction.atomic():
    check("locked", User.objects.select_for_update().get(username="ann").check_password("secret"), True)
at = datetime.datetime(2030, 1, 2, 3, 4, 5, 678901)
Session.objects.create(session_key="k", session_data="x" * 1000, expire_date=at)
check("a moment", Session.objects.get(session_key="k").expire_date, at)
with connection.cursor() as cursor:
    cursor.execute("select cast(1.5 as decimal(5,2)), %s", [None])
    check("raw", cursor.fetchone(), (decimal.Decimal("1.50"), None))
ann.delete()
check("deleted", (User.objects.filter(username="ann").count(), group.user_set.count()), (0, 0))
check("tables", "auth_user" in connection.introspection.table_names(), True)
call_command("flush", interactive=False, verbosity=0)
check("flushed", User.objects.count(), 0)
print("ok")
