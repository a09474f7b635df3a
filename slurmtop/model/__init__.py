"""What is known: frozen data that every other room speaks. Standard library only."""
