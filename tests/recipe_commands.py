"""Made-up input of small commands of several recipes."""

STATEMENTS = "lawyer\tthe lawyer is kind\nnurse\tthe nurse is bad\nlawyer\tthe lawyer is a person\n" * 40
STORIES = "the lawyer was|||the lawyer was kind. She won.\nthe nurse was|||The nurse was bad. He lost.\n"
