"""Roman numerals."""


def roman(number):
    text = ""
    for value, letters in [(10, "X"), (9, "IX"), (5, "V"), (1, "I")]:
        while number >= value:
            text, number = text + letters, number - value
    return text
