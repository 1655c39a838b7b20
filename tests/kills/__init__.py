"""Real processes of the command line, killed with SIGKILL at moments that a seed draws.

A history is a run, killed and gone on with several times. At its end it must have given what a run
without any kill gives, byte for byte.

    python -m kills --kills 300        from the folder tests
    python -m kills --seed 17          one history again, step by step
"""
