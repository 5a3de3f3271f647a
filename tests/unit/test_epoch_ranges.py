from lakecommit.epoch_ranges import listed, parse_ranges, ranges


def test_epochs_are_shown_as_ranges():
    assert listed([5, 3, 4, 9, 11, 12]) == "3-5, 9, 11-12"
    assert listed([]) == ""


def test_what_the_command_line_is_told_is_what_it_takes():
    assert ranges({5, 3, 4, 9}) == "3-5,9"
    assert parse_ranges(ranges({5, 3, 4, 9})) == parse_ranges(listed({5, 3, 4, 9})) == {3, 4, 5, 9}
