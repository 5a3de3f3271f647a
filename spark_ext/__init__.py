"""What Spark sees: the data source, its writers, and the committer's life in the driver.

With a Spark that is too old this cannot be imported, and says so, before a module asks for what that Spark lacks.
"""

import pyspark

from lakecommit.spark_ext.version import check_version

check_version(pyspark.__version__)
