"""From a Spark worker to the committer: through the driver's service, or inline if there is none."""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, replace

from lakecommit.options.process import process_options
from lakecommit.service.dispatch import Committers, Facts
from lakecommit.service.server import ADDRESS_VARIABLE, SESSION_VARIABLE, Unreachable, ask, last_defaults
from lakecommit.service.wire import Answer, Request

_log = logging.getLogger("lakecommit.spark_ext")


@dataclass(frozen=True, slots=True)
class Submitted:
    answer: Answer
    inline: bool


def submit(request: Request) -> Submitted:
    """Has `request` done and waits for it. Raises what the committer raised.

    Inline is the same code in this process: it begins from the store, so epochs that are pending elsewhere are
    committed first, and running beside a service that only seems dead is as safe as two drivers are.
    """
    directory = os.environ.get(ADDRESS_VARIABLE)
    facts = Facts()
    if directory:
        request = replace(request, session=os.environ.get(SESSION_VARIABLE, ""))
        try:
            return Submitted(ask(directory, request), inline=False)
        except Unreachable as error:
            _log.warning("the committer in the driver cannot be reached (%s): committing inline", error)
            facts = Facts(defaults=last_defaults(directory, request.session))
    committers = Committers(inline=True, process=process_options(facts.defaults, os.environ))
    return Submitted(asyncio.run(committers.answer(request, facts)), inline=True)
