"""Frozen values that flow through the pipeline; no I/O, no clocks, no processes.

Suite -> Case -> Plan -> Records -> Run -> Measurement -> Verdict -> CaseResult, one noun per file.
"""
