import pytest

from tests.unit.progress.epochs import Epoch


@pytest.fixture
def spark_log(spark):
    """What the driver's JVM logs, as a function that gives the text so far."""
    text = spark._jvm.java.io.StringWriter()
    core = spark._jvm.org.apache.logging.log4j.core
    appender = core.appender.WriterAppender.createAppender(None, None, text, "spark_log", False, False)
    appender.start()
    root = spark._jvm.org.apache.logging.log4j.LogManager.getRootLogger()
    root.addAppender(appender)
    yield text.toString
    root.removeAppender(appender)


@pytest.fixture(scope="session")
def one_driver(tmp_path_factory):
    """What a driver of its own saw, before and after `register`."""
    from .other_driver import drive  # noqa: PLC0415 (tests without Spark must not need it)

    return drive("before_and_after_register", tmp_path_factory.mktemp("driver"))


@pytest.fixture
def told(monkeypatch):
    """The epochs that the committer is told about from here on."""
    from lakecommit.service.wire import Verb  # noqa: PLC0415
    from lakecommit.spark_ext.session import SparkSessions  # noqa: PLC0415 (tests without Spark must not need it)

    epochs = []
    facts = SparkSessions.facts

    def recording(self, request):
        found = facts(self, request)
        if request.verb is Verb.COMMIT_EPOCH:
            epochs.append(Epoch(request.epoch, found.planned, found.latest))
        return found

    monkeypatch.setattr(SparkSessions, "facts", recording)
    return epochs
