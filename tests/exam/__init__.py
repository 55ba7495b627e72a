"""Tests of the exam."""
