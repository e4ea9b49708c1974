"""How far an evaluation is: counted where cases are worked on, told in a terminal and in Prefect."""
