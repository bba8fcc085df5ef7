"""CSV output."""


def write(case, states, out):
    dx = case["length"] / case["cells"]
    print("step,time,cell,x,temperature", file=out)
    for step, temperatures in states:
        for cell, temperature in enumerate(temperatures):
            print(f"{step},{step * case['dt']:.9g},{cell},{(cell + 0.5) * dx:.9g},{temperature:.10g}", file=out)
