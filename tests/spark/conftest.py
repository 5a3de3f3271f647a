import pytest


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
