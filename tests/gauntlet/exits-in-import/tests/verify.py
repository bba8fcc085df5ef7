import importlib.util

spec = importlib.util.spec_from_file_location("calc", "/app/calc.py")
calc = importlib.util.module_from_spec(spec)
spec.loader.exec_module(calc)
result = calc.area(6, 7)
assert type(result) is int and result == 6 * 7
