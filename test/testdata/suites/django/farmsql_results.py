"""A test runner of Django's that writes how each test ended, a line of JSON each."""
import json
import os
import unittest

from django.test.runner import DiscoverRunner


class Results(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.lines = open(os.environ["FARMSQL_RESULTS"], "a")
        self.failed = set()

    def stopTestRun(self):
        super().stopTestRun()
        self.lines.close()

    def write(self, test, action, output=""):
        name = test.id()
        if "(" in name:  # of a class as a whole: setUpClass (app.tests.Class)
            what, _, of = name.rstrip(")").partition(" (")
            name = of + "." + what
        json.dump({"Action": action, "Test": name, "Output": output}, self.lines)
        self.lines.write("\n")
        self.lines.flush()

    def fail(self, test, err):
        if test.id() not in self.failed:
            self.failed.add(test.id())
            self.write(test, "fail", self._exc_info_to_string(err, test))

    def addSuccess(self, test):
        super().addSuccess(test)
        if test.id() not in self.failed:
            self.write(test, "pass")

    def addError(self, test, err):
        super().addError(test, err)
        self.fail(test, err)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fail(test, err)

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.fail(test, err)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.write(test, "skip", reason)

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.write(test, "skip", "Django expects it to fail with MySQL")

    def addUnexpectedSuccess(self, test):
        self.write(test, "pass")


class Runner(DiscoverRunner):
    def get_resultclass(self):
        return Results
