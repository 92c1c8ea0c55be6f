# SPDX-License-Identifier: Apache-2.0
"""The version, which a test holds to the project's file VERSION."""

__version__ = "0.1.0"
