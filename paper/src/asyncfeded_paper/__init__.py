"""The paper's whole evaluation: its figures and tables, beside the authors' own numbers."""
