"""The rules of the planner, one idea a module; `plan.RULES` puts them in order."""
