"""A small standalone cluster inside the driver's JVM, with executors in processes of their own.

It is what Spark's `local-cluster` master starts, except that each worker has a host name of its own: Spark runs a
speculative attempt only on another host than the first one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark import SparkConf, SparkContext

CORES = 1
MEMORY_MB = 512


def start_cluster(settings: Mapping[str, str], hosts: Sequence[str]) -> str:
    """Starts a master and a worker for each of `hosts`, which are loopback addresses. Returns the master's URL.

    Before: no Spark context exists, and SPARK_HOME is set, from where a worker starts executors. All of it ends with
    the JVM.
    """
    conf = SparkConf().setAll(list(settings.items()))
    SparkContext._ensure_initialized(conf=conf)
    jvm, gateway = SparkContext._jvm, SparkContext._gateway
    # A default port of 0, for every part of the cluster.
    java_conf = jvm.org.apache.spark.SparkConf(False).set("spark.shuffle.service.enabled", "false")
    # Killing executors is what these tests do: the application is never given up for it.
    java_conf.set("spark.deploy.maxExecutorRetries", "-1")
    started = jvm.org.apache.spark.deploy.master.Master.startRpcEnvAndEndpoint(hosts[0], 0, 0, java_conf)
    url = f"spark://{hosts[0]}:{started._1().address().port()}"
    urls = gateway.new_array(jvm.java.lang.String, 1)
    urls[0] = url
    for number, host in enumerate(hosts):
        jvm.org.apache.spark.deploy.worker.Worker.startRpcEnvAndEndpoint(
            host,
            0,
            0,
            CORES,
            2 * MEMORY_MB,
            urls,
            None,
            jvm.scala.Some(number + 1),
            java_conf,
            jvm.scala.Option.empty(),
        )
    return url
