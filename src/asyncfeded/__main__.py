"""`python -m asyncfeded` is the command line."""

from asyncfeded.cli.main import main

if __name__ == "__main__":
    main()
