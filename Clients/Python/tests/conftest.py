# SPDX-License-Identifier: Apache-2.0
"""Fixtures for the tests with an agent."""

import pathlib
import typing

import pytest

from agent import Agent, Server


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> typing.Iterator[Agent]:
    """An agent that runs."""
    found = Agent(tmp_path)
    yield found
    found.end()


@pytest.fixture
def server() -> typing.Iterator[Server]:
    """A server that listens."""
    found = Server()
    yield found
    found.close()
