"""Bookings: times, the file, the reports and the command line."""
